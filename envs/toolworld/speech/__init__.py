"""How a scripted user understands what an agent says: open words, closed rules, no model.

A message is cut into clauses; each clause has a mood (a question, a request, an offer, a refusal, a report, a
courtesy); what it is about is found by concepts, a verb and a noun with their synonyms, and by the values that it
names. The same words always mean the same, so the user cannot drift. What is not understood is nothing said.

    words     one spelling of what can be written in several; concepts
    values    ids, dates, amounts and quantities that a text names, and when two texts contradict each other
    moods     clauses and their moods
    reading   all of it together: what a message asks, offers, refuses, reports
"""
