"""A time-stepped pool scheduler: bookings into the future, re-estimation, kills (RLSchert, 2021)."""
