"""What an expression may not contain is found however it is spelled, and said so that its writer can act."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.definition import MAX_EXPRESSION_LENGTH
from catalog.expressions import ExpressionError, Program, problems
from tests.catalog.expressions.random_expressions import token_soup

ALLOWED = [
    ".spec.replicas // 1",
    ".spec.replicatedJobs[].template.spec.template",
    "(.spec.replicas // 1) * ((.spec.leaderWorkerTemplate.size // 1) - 1)",
    "(.spec.replicas // 1) * (.spec.template.cliques[].spec.replicas // 1)",
    ".spec.replicatedJobs[] | .replicas * .template.spec.parallelism",
    "(.template.spec.parallelism // 1) as $p | (.template.spec.completions // $p) as $c | .replicas * ([$p,$c]|min)",
    "[.spec.pytorchReplicaSpecs // {} | to_entries[] | .value.replicas // 1] | add // 0",
    "if .spec.mpiReplicaSpecs.Worker then (.spec.mpiReplicaSpecs.Worker.replicas // 0) else 0 end",
    "(.spec.replicas // 1) as $r | {leader: $r, worker: ($r*($r-1)), gang: $r}",
    ".spec.leaderWorkerTemplate | .leaderTemplate // .workerTemplate",
    "[.spec.tasks[]? | .replicas // 0] | add // 0",
    ".spec | if .parallelism==null then .completions elif .completions then [.parallelism, .completions]|min end",
    ".spec.services | .[]",
    ".spec.services | to_entries[] | .key",
    '.spec.components[] | .podTemplate.spec.containers[] | select(.name == "main") | .image',
    '.metadata.labels["nvidia.com/dynamo-component"] | ascii_downcase',
    '.spec.template.metadata.annotations["autoscaling.knative.dev/min-scale"] // 1 | tonumber',
    '.spec.template.metadata.annotations["autoscaling.knative.dev/max-scale"] | tonumber?',
    "select(.spec.worker == null) | .spec.template",
    '.metadata.labels["x/group-index"] // "0"',
    "{requests: .spec.resources.requests, limits}",
    '[.status.conditions[] | select(.type == "Ready") | .status] | first == "True"',
    '.metadata.name | test("^worker-[0-9]+$")',
    '.metadata.name | sub("-[0-9]+$"; "")',
    '.metadata.name | capture("(?<role>[a-z]+)-(?<index>[0-9]+)").role',
    "reduce .spec.groups[] as $g (0; . + $g.replicas)",
    "foreach .a[] as $x (0; . + $x; [$x, .])",
    "try .a.b catch null",
    '.a["b"]?.c[0][1:]["d"]."e"[]?',
    "range(3) as $i | .a[$i]",
    '@base64 "x\\(.a)"',
    '[.a[] | .b] | sort | unique | map(tostring) | join(",")',
    '.env, .input, .["env"], {env, input: 1}, .and.or.not.if',
    ".a # env $ENV input\n| .b",
    '"env $ENV input" | length',
    'IN("a", "b")',
    "with_entries(select(.value))",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_definitions_need_may_be_used(text: str) -> None:
    """Upstream's shipped expressions, and what a reasonable writer would add."""
    assert problems(text) == ()
    Program.compile([text])


# What is found, and the words that the finding must hold.
REFUSED = [
    ("env", "column 1: `env` reads the environment"),
    ("env.PATH", "column 1: `env` reads the environment"),
    ("$ENV", "column 1: `$ENV` reads the environment"),
    ("$ENV.PATH", "column 1: `$ENV` reads the environment"),
    ("(  env )", "column 4: `env` reads the environment"),
    ("#env\nenv", "column 6: `env` reads the environment"),
    (".a|env", "column 4: `env` reads the environment"),
    ('"\\(env)"', "column 4: `env` reads the environment"),
    ('"a\\("b\\($ENV|length)c")d"', "column 9: `$ENV` reads the environment"),
    ('@sh "\\($ENV)"', "column 8: `$ENV` reads the environment"),
    ('@base64 "\\( env # x\n)"', "column 13: `env` reads the environment"),
    ("{env: env}", "column 7: `env` reads the environment"),
    ("{a: 1, (env | keys[0]): 1}", "column 9: `env` reads the environment"),
    ("{$ENV}", "column 2: `$ENV` reads the environment"),
    (".[env]", "column 3: `env` reads the environment"),
    (".[env:]", "column 3: `env` reads the environment"),
    (".a[1:env|length]", "column 6: `env` reads the environment"),
    (".a as $x | env", "column 12: `env` reads the environment"),
    ("try env catch .", "column 5: `env` reads the environment"),
    ("try error(1) catch env", "column 20: `env` reads the environment"),
    ("if env then 1 else 2 end", "column 4: `env` reads the environment"),
    ("reduce env as $x (0; 1)", "column 8: `env` reads the environment"),
    ("reduce .a as $x (0; env)", "column 21: `env` reads the environment"),
    ("map(select(env))", "column 12: `env` reads the environment"),
    ("input", "column 1: `input` reads other inputs"),
    ("[inputs]", "column 2: `inputs` reads other inputs"),
    ("input_filename", "reads other inputs"),
    ("input_line_number", "reads other inputs"),
    ("debug", "column 1: `debug` prints"),
    ('debug("x")', "column 1: `debug` prints"),
    ("stderr", "column 1: `stderr` prints"),
    ("halt", "column 1: `halt` stops the process"),
    ("halt_error(1)", "column 1: `halt_error` stops the process"),
    ("now", "column 1: `now` depends on the clock"),
    ("now | localtime", "column 7: `localtime` depends on the clock"),
    ('strptime("%Y")', "depends on the clock"),
    ('import "a" as a; .', "column 1: `import` reads another file"),
    ('include "a"; .', "column 1: `include` reads another file"),
    ('"a" | modulemeta', "column 7: `modulemeta` reads files"),
    ("get_search_list", "column 1: `get_search_list` reads files"),
    ("$__loc__", "column 1: `$__loc__` tells where in the program"),
    ("{$__loc__}", "column 2: `$__loc__` tells where in the program"),
    ("$__prog_args", "column 1: `$__prog_args` reads the program's arguments"),
    ("def f: f; f", "column 1: `def` defines a function"),
    (".a | def f: 1; f", "column 6: `def` defines a function"),
    ("..", "column 1: `..` can loop for ever"),
    ("[..|.a?]", "column 2: `..` can loop for ever"),
    ("recurse", "can loop for ever"),
    ("recurse(.a)", "can loop for ever"),
    ("repeat(.)", "can loop for ever"),
    ("while(true; .)", "can loop for ever"),
    ("until(false; .)", "can loop for ever"),
    ("walk(.)", "can loop for ever"),
    ("limit(3; .a[])", "column 1: `limit` leaves a loop early"),
    ("label $x | break $x", "column 1: `label` makes a loop"),
    ("range(.n)", "column 1: `range` has a computed bound; write its bounds as numbers"),
    ("range(0; .n)", "`range` has a computed bound"),
    ("range(1000000)", "`range` gives more than 1000 numbers"),
    ("range(0; 10; 0)", "`range` gives more than 1000 numbers"),
    ("range(0; 10; 0.001)", "`range` gives more than 1000 numbers"),
    (".a = 1", "column 4: `=` changes its input"),
    (".a |= 1", "column 4: `|=` changes its input"),
    (".a += 1", "column 4: `+=` changes its input"),
    (".a //= 1", "column 4: `//=` changes its input"),
    ("with_entries(.value += 1)", "column 21: `+=` changes its input"),
    ("del(.a)", "column 1: `del` changes its input"),
    ('setpath(["a"]; 1)', "column 1: `setpath` changes its input"),
    ("paths", "column 1: `paths` works on paths"),
    ("keys_unsorted", "column 1: `keys_unsorted` gives keys in no defined order; use `keys`"),
    ("nosuch", "column 1: `nosuch` is not a function of this language"),
    ("selct(.a)", "column 1: `selct` is not a function of this language; did you mean `select`?"),
    ("gpu", "a fixed key is written `.name`, a text in quotes"),
    ("a::b", "column 1: `a::b` is not a function of this language"),
    ("split(1;2;3)", "column 1: `split` takes 1 or 2 argument(s) here, not 3"),
    ("$x", "column 1: `$x` is not defined here; define it with `… as $x | …`"),
    ("(1 as $x | .) | $x", "column 17: `$x` is not defined here"),
    (". as $x | .a as $y | $z", "column 22: `$z` is not defined here"),
    (". as [$a, $b] | $a", "column 6: takes a value apart while naming it"),
    (".a ?// 1", "column 4: `?//` is jq's destructuring operator; put a space between `?` and `//`"),
    ("@rot13", "column 1: `@rot13` is not a format of this language"),
    ('@rot13 "\\(.a)"', "`@rot13` is not a format of this language"),
    ("100000000000000000000", "column 1: the number 100000000000000000000 is beyond 2^53"),
    ("nan", "is not a number that JSON has"),
    ("", "column 1: the expression is empty"),
    ("  # only a comment", "the expression is empty"),
    (".a.", "column 3: found `.` where an operator or the end is due"),
    (".a[", "column 4: the expression ends inside a bracket"),
    ('"abc', "column 5: the expression ends inside a string"),
    ('"\\(', "the expression ends inside a string"),
    (".a)", "column 3: `)` closes nothing that is open"),
    ("(.a]", "column 4: `]` closes nothing that is open"),
    (".a b", "column 4: found `b` where an operator or the end is due"),
    ("if .a then 1", "the expression ends where `end` is due"),
    (".a == 1 == 2", "column 9: found `==` where a parenthesis around one of two comparisons is due"),
    ('"\\q"', "column 2: a string holds an escape that is not JSON's"),
    ('"\\ud800"', "a string holds an escape that is not JSON's"),
    (".a # x\\\n| env", "column 4: a comment ends in a backslash"),
    (".a # x\r| env", "column 4: a comment ends in a backslash or holds a carriage return"),
    (".a\0", "column 3: the expression holds a NUL or half a character"),
    ('"\0"', "column 2: the expression holds a NUL or half a character"),
    ('"\ud800"', "column 2: the expression holds a NUL or half a character"),
    (".é", "the character 'é' has no meaning in jq"),
    (".\u2024a", "has no meaning in jq"),
    ("ｅｎｖ", "has no meaning in jq"),
    ("{(1): 2}", "column 2: an object's key is a string"),
    ('{"a\\(1)"}', "column 2: a key with interpolation has no value"),
]


@pytest.mark.parametrize("text, words", REFUSED, ids=[text[:30] for text, _ in REFUSED])
def test_what_may_not_be_used_is_named_with_its_column(text: str, words: str) -> None:
    """The finding says what was found, where, and what to do."""
    found = problems(text)
    assert any(words in problem for problem in found), found
    with pytest.raises(ExpressionError):
        Program.compile([text])


def test_all_findings_are_told_at_once() -> None:
    """Three faults in one expression are three problems; one that occurs twice in one place is told once."""
    assert problems("env | input | $ENV") == (
        "column 1: `env` reads the environment of the process; an expression sees only its input",
        "column 7: `input` reads other inputs; an expression sees only its input",
        "column 15: `$ENV` reads the environment of the process; an expression sees only its input",
    )


def test_a_program_tells_the_problems_of_all_its_expressions() -> None:
    """Not those of the first one only."""
    with pytest.raises(ExpressionError) as raised:
        Program.compile([".a", "env", "now"])
    assert len(raised.value.problems) == 2


NESTED = {
    "parentheses": "(" * 2000 + "." + ")" * 2000,
    "too many parentheses to close": "(" * 4000,
    "arrays": "[" * 500 + "]" * 500,
    "minus": "-" * 3000 + "1",
    "try": "try " * 1000 + ".",
    "reduce": "reduce " * 500 + ".",
    "if": "if . then " * 300,
    "question marks": ".a" + "?" * 4000,
    "sums": "1" + "+1" * 2000,
    "alternatives": ".a" + "//.a" * 800,
    "pipes": "." + "|." * 2000,
    "commas": "." + ",." * 2000,
    "steps": ".a" * 2000,
    "iterations": "." + "[]" * 2000,
    "interpolation": '"\\(' * 1000,
    "keys": "." + "[." * 2000 + "]" * 2000,
    "functions": "map(" * 800 + "." + ")" * 800,
    "bindings": ". as $x | " * 400 + "$x",
    "objects": "{a:" * 600 + "1" + "}" * 600,
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED.keys())
def test_deep_nesting_is_a_problem_or_evaluates(text: str) -> None:
    """Never a recursion error, however an expression is nested."""
    if not problems(text):
        Program.compile([text]).evaluate({"a": {"a": 1}})


def test_an_expression_has_a_greatest_length() -> None:
    """The length found is in the message."""
    assert problems("." * (MAX_EXPRESSION_LENGTH + 1)) == ("the expression has 4097 characters; keep it within 4096",)


@given(st.one_of(st.text(max_size=40), token_soup))
def test_any_text_is_an_expression_or_has_problems(text: str) -> None:
    """Problems are sentences for people; nothing else comes out of the check, whatever the text."""
    for problem in problems(text):
        assert problem.strip()
        assert "Traceback" not in problem
