"""An agent's HTTP port: the application, its limits, and the server, which the dashboard shares."""
