"""⟨α,ε⟩-BAL, the anytime nonmyopic planner: policy, tree, search, discretisation, bounds."""
