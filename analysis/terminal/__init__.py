"""What a person types and sees; nothing here decides a number."""
