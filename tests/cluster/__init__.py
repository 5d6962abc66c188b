"""Several hosts on one machine: network namespaces, real balancers before them, and every request accounted for."""
