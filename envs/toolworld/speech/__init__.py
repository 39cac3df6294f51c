"""Understanding of an agent's words by a scripted user: open words, closed rules, no model.

A message is cut into clauses; each clause has a mood (a question, a request, an offer, a refusal, a report, a
courtesy); what it is about is found by concepts, a verb and a noun with their synonyms, and by the values that it
names. The same words always mean the same, so the user cannot drift. What is not understood is nothing said.

    words      one spelling of what can be written in several; concepts; the shape of a text
    values     ids, dates, amounts and quantities that a text names, and when two texts contradict each other
    ways       many patterns as one search
    moods      clauses and their moods; ``assent`` whether one asks for a yes
    lexicon    the words of a domain, and of which of its actions and deeds a clause speaks
    asking     what a clause wants of the listener
    telling    refusals and reports
    proposing  what would be done after a yes; ``strange`` whether nobody asked for it, ``wish`` whether it is what he asked for
    reading    all of it together

A message is read once for all that differ from it in numbers alone (``reading.understand``).
"""
