"""Scenes that are generated: rooms, streets and halls, with their exact motions."""
