"""What the product objects to: each rule with its code, clauses, kind and words (`catalogue`), and the findings made from it (`rule`)."""
