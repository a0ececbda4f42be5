"""What the commands share: configurations, exit statuses and help."""
