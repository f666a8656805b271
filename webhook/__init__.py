"""The service: answers the API server's admission reviews with stamps. Stands on `catalog`; is imported by nobody."""
