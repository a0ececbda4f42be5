"""Pictures and pages of a registration, and the files that it leaves."""
