"""What layers cost: FLOP and bytes by rule, times by measurement, plans by equation."""
