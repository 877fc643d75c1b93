"""HTTP ports of this project: an agent's and the dashboard's share their limits, protocol and server."""
