"""Scenes that are generated, with their exact motions: rooms, streets, objects, sites of a scanner."""
