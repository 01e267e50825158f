"""The grammar of the corpus ``nested-translation``, as tables.

The source language is German-like. Relative clauses are verb-final and stand between commas right after their
noun, so that they nest in the middle of the clause they belong to; main clauses have the verb, or the
auxiliary of the perfect, in second place with the participle at the end. Verbs agree with their subject in
number; articles, adjectives and relative pronouns carry gender, number and case, and the verb decides the
case of its object. The target language is English-like: subject-verb-object, with the verb of a subject
relative before its object.

Every source sentence has exactly one translation. German leaves it open who sees whom in "die Katze , die das
Kind sieht": the tables admit a relative clause or a fronted object only where case, or the number of the verb
at the far end of the clause, decides it.
"""

from __future__ import annotations

from collections.abc import Iterator

from .rule_table import Features, expand_table, table_rows
from .synchronous_grammar import Rule, SynchronousGrammar

DOMAINS = {
    "G": ("m", "f", "n"),  # gender of a noun phrase
    "H": ("m", "f", "n"),  # gender of the clause's other noun phrase
    "N": ("sg", "pl"),  # number of a noun phrase
    "P": ("sg", "pl"),  # number of the clause's other noun phrase
    "C": ("nom", "acc", "dat"),
    "E": ("inner", "last"),  # "last": only the full stop follows, and no comma closes a relative clause
}

SYNTAX = """
# weight | left side | German-like side | English-like side | condition

# Main clauses: the finite verb is in second place, after the subject, an adverb or the object.
3 | S               | NP[nom G N inner]#1 VI[N]#2 END#3                                 | #1 #2 #3
1 | S               | NP[nom G N inner]#1 AUX[N]#2 VIP#3 END#4                          | #1 #2 #3 #4
2 | S               | ADV#1 VI[N]#2 NP[nom G N last]#3 END#4                            | #1 #3 #2 #4
1 | S               | ADV#1 AUX[N]#2 NP[nom G N inner]#3 VIP#4 END#5                    | #1 #3 #2 #4 #5
4 | S               | NP[nom G N inner]#1 VT[acc N]#2 NP[acc H P last]#3 END#4          | #1 #2 #3 #4
2 | S               | NP[nom G N inner]#1 VT[dat N]#2 NP[dat H P last]#3 END#4          | #1 #2 #3 #4
2 | S               | NP[nom G N inner]#1 AUX[N]#2 NP[acc H P inner]#3 VTP[acc]#4 END#5 | #1 #2 #4 #3 #5
1 | S               | NP[nom G N inner]#1 AUX[N]#2 NP[dat H P inner]#3 VTP[dat]#4 END#5 | #1 #2 #4 #3 #5
2 | S               | ADV#1 VT[acc N]#2 NP[nom G N inner]#3 NP[acc H P last]#4 END#5    | #1 #3 #2 #4 #5
1 | S               | ADV#1 VT[dat N]#2 NP[nom G N inner]#3 NP[dat H P last]#4 END#5    | #1 #3 #2 #4 #5
2 | S               | NP[acc H P inner]#1 VT[acc N]#2 NP[nom G N last]#3 END#4 | #3 #2 #1 #4 | decidable
1 | S               | NP[dat H P inner]#1 VT[dat N]#2 NP[nom G N last]#3 END#4 | #3 #2 #1 #4

# Noun phrases
3 | NP[C G N E]     | NB[C G N]#1                             | #1
1 | NP[C G N inner] | NB[C G N]#1 , RC[G N]#2 ,               | #1 #2
1 | NP[C G N last]  | NB[C G N]#1 , RC[G N]#2                 | #1 #2
3 | NB[C G N]       | DET[C G N]#1 N[C G N]#2                 | #1 #2
1 | NB[C G N]       | DET[C G N]#1 ADJ[C G N]#2 N[C G N]#3    | #1 #2 #3

# Relative clauses on a noun of gender G and number N, which is their subject or their object
2 | RC[G N]         | REL[nom G N]#1 VI[N]#2                                 | #1 #2
1 | RC[G N]         | REL[nom G N]#1 VIP#2 AUX[N]#3                          | #1 #3 #2
3 | RC[G N]         | REL[nom G N]#1 NP[acc H P inner]#2 VT[acc N]#3         | #1 #3 #2    | decidable
1 | RC[G N]         | REL[nom G N]#1 NP[dat H P inner]#2 VT[dat N]#3         | #1 #3 #2
1 | RC[G N]         | REL[nom G N]#1 NP[acc H P inner]#2 VTP[acc]#3 AUX[N]#4 | #1 #4 #3 #2 | decidable
3 | RC[G N]         | REL[acc G N]#1 NP[nom H P inner]#2 VT[acc P]#3         | #1 #2 #3    | decidable
1 | RC[G N]         | REL[dat G N]#1 NP[nom H P inner]#2 VT[dat P]#3         | #1 #2 #3
1 | RC[G N]         | REL[acc G N]#1 NP[nom H P inner]#2 VTP[acc]#3 AUX[P]#4 | #1 #2 #4 #3 | decidable

# Words without inflection tables of their own
1 | END             | .     | .
1 | AUX[sg]         | hat   | has
1 | AUX[pl]         | haben | have
"""

# Forms by gender (m, f, n; any in the plural), and in each group by case (nominative, accusative, dative)
DETERMINERS = """
# nonterminal | weight | masculine | feminine | neuter | plural | English singular and plural
DET | 4 | der den dem          | die die der        | das das dem          | die die den        | the the
DET | 1 | dieser diesen diesem | diese diese dieser | dieses dieses diesem | diese diese diesen | this these
REL | 1 | der den dem          | die die der        | das das dem          | die die denen      | that that
"""

NOUNS = """
# gender | singular | plural      | dative plural | English singular | plural
m        | Hund     | Hunde       | Hunden        | dog              | dogs
m        | Lehrer   | Lehrer      | Lehrern       | teacher          | teachers
m        | Vogel    | Vögel       | Vögeln        | bird             | birds
m        | König    | Könige      | Königen       | king             | kings
m        | Arzt     | Ärzte       | Ärzten        | doctor           | doctors
m        | Koch     | Köche       | Köchen        | cook             | cooks
m        | Wolf     | Wölfe       | Wölfen        | wolf             | wolves
m        | Freund   | Freunde     | Freunden      | friend           | friends
f        | Katze    | Katzen      | Katzen        | cat              | cats
f        | Frau     | Frauen      | Frauen        | woman            | women
f        | Maus     | Mäuse       | Mäusen        | mouse            | mice
f        | Ente     | Enten       | Enten         | duck             | ducks
f        | Kuh      | Kühe        | Kühen         | cow              | cows
f        | Königin  | Königinnen  | Königinnen    | queen            | queens
f        | Ziege    | Ziegen      | Ziegen        | goat             | goats
f        | Schwester | Schwestern | Schwestern    | sister           | sisters
n        | Kind     | Kinder      | Kindern       | child            | children
n        | Pferd    | Pferde      | Pferden       | horse            | horses
n        | Huhn     | Hühner      | Hühnern       | hen              | hens
n        | Mädchen  | Mädchen     | Mädchen       | girl             | girls
n        | Schwein  | Schweine    | Schweinen     | pig              | pigs
n        | Kamel    | Kamele      | Kamelen       | camel            | camels
n        | Tier     | Tiere       | Tieren        | animal           | animals
n        | Monster  | Monster     | Monstern      | monster          | monsters
"""

# object: the case that the verb gives its object, or - for a verb without one
VERBS = """
# object | singular  | plural    | participle | English singular | plural   | participle
-        | schläft   | schlafen  | geschlafen | sleeps           | sleep    | slept
-        | lacht     | lachen    | gelacht    | laughs           | laugh    | laughed
-        | singt     | singen    | gesungen   | sings            | sing     | sung
-        | tanzt     | tanzen    | getanzt    | dances           | dance    | danced
-        | wartet    | warten    | gewartet   | waits            | wait     | waited
-        | spielt    | spielen   | gespielt   | plays            | play     | played
-        | weint     | weinen    | geweint    | cries            | cry      | cried
-        | arbeitet  | arbeiten  | gearbeitet | works            | work     | worked
acc      | sieht     | sehen     | gesehen    | sees             | see      | seen
acc      | liebt     | lieben    | geliebt    | loves            | love     | loved
acc      | hört      | hören     | gehört     | hears            | hear     | heard
acc      | sucht     | suchen    | gesucht    | seeks            | seek     | sought
acc      | findet    | finden    | gefunden   | finds            | find     | found
acc      | jagt      | jagen     | gejagt     | chases           | chase    | chased
acc      | kennt     | kennen    | gekannt    | knows            | know     | known
acc      | ruft      | rufen     | gerufen    | calls            | call     | called
acc      | malt      | malen     | gemalt     | paints           | paint    | painted
acc      | lobt      | loben     | gelobt     | praises          | praise   | praised
dat      | hilft     | helfen    | geholfen   | helps            | help     | helped
dat      | dankt     | danken    | gedankt    | thanks           | thank    | thanked
dat      | glaubt    | glauben   | geglaubt   | believes         | believe  | believed
dat      | droht     | drohen    | gedroht    | threatens        | threaten | threatened
dat      | antwortet | antworten | geantwortet | answers         | answer   | answered
"""

ADJECTIVES = """
# stem  | English
klein   | small
alt     | old
jung    | young
müd     | tired
gut     | good
schön   | beautiful
klug    | clever
stark   | strong
arm     | poor
laut    | loud
"""

ADVERBS = """
# German | English
heute    | today
jetzt    | now
hier     | here
dort     | there
oft      | often
manchmal | sometimes
"""


def decidable(features: Features) -> bool:
    """Whether the form of a clause with two noun phrases shows which one is nominative and which accusative.

    Only the masculine singular has different forms for the two; otherwise the verb's number decides.
    """
    first, second = (features["G"], features["N"]), (features["H"], features["P"])
    return ("m", "sg") in (first, second) or features["N"] != features["P"]


def nested_grammar() -> SynchronousGrammar:
    """The grammar that this module's tables stand for; relative clauses are what nests."""
    rules = [*expand_table(SYNTAX, DOMAINS, {"decidable": decidable}), *_lexicon()]
    nesting = {rule.left for rule in rules if rule.left.startswith("RC[")}
    return SynchronousGrammar(rules, "S", nesting)


def _lexicon() -> Iterator[Rule]:
    for name, weight, *forms, english in table_rows(DETERMINERS):
        yield from _determiners(name, float(weight), forms, english.split())
    for gender, singular, plural, dative_plural, *english_noun in table_rows(NOUNS):
        yield from _nouns(gender, singular, [plural, plural, dative_plural], english_noun)
    for case, *forms in table_rows(VERBS):
        yield from _verbs(case, forms[:3], forms[3:])
    for stem, english_adjective in table_rows(ADJECTIVES):
        yield from _adjectives(stem, english_adjective)
    for german, english_adverb in table_rows(ADVERBS):
        yield _word("ADV", german, english_adverb)


def _word(left: str, source: str, target: str, weight: float = 1.0) -> Rule:
    return Rule(left, (), (source,), (target,), weight)


def _determiners(name: str, weight: float, forms: list[str], english: list[str]) -> Iterator[Rule]:
    for gender, singular in zip(DOMAINS["G"], forms[:3], strict=True):
        for case, one, many in zip(DOMAINS["C"], singular.split(), forms[3].split(), strict=True):
            yield _word(f"{name}[{case} {gender} sg]", one, english[0], weight)
            yield _word(f"{name}[{case} {gender} pl]", many, english[1], weight)


def _nouns(gender: str, singular: str, plurals: list[str], english: list[str]) -> Iterator[Rule]:
    for case, plural in zip(DOMAINS["C"], plurals, strict=True):
        yield _word(f"N[{case} {gender} sg]", singular, english[0])
        yield _word(f"N[{case} {gender} pl]", plural, english[1])


def _verbs(case: str, german: list[str], english: list[str]) -> Iterator[Rule]:
    finite, participle = ("VI[{}]", "VIP") if case == "-" else (f"VT[{case} {{}}]", f"VTP[{case}]")
    for number, source, target in zip(DOMAINS["N"], german[:2], english[:2], strict=True):
        yield _word(finite.format(number), source, target)
    yield _word(participle, german[2], english[2])


def _adjectives(stem: str, english: str) -> Iterator[Rule]:
    """After a definite article: -e in the nominative singular and what looks like it, else -en."""
    for case in DOMAINS["C"]:
        for gender in DOMAINS["G"]:
            plain = case == "nom" or (case == "acc" and gender != "m")
            yield _word(f"ADJ[{case} {gender} sg]", f"{stem}e" if plain else f"{stem}en", english)
            yield _word(f"ADJ[{case} {gender} pl]", f"{stem}en", english)
