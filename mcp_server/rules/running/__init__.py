"""How does a run go? Its stages with what each allows, and the thoughts that lead from one to the next."""
