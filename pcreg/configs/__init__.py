"""Hydra configurations of training and evaluation."""
