"""What executes graphs: LangGraph's, functions, and services elsewhere. Only the execution service loads any of it."""
