"""The anytime nonmyopic planner ⟨α,ε⟩-BAL: policy, tree, search, discretisation and bounds."""
