"""Everything that talks to the API server: owners, watches, registration, certificates, leadership, repair."""
