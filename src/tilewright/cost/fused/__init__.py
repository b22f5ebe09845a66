"""What a fused group costs: its operators' closed forms, joined by the rules of fused groups."""
