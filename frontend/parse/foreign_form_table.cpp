#include "frontend/parse/foreign_forms.h"

namespace piper::parse {

namespace {

using Where = ForeignForm::Where;

// A longer form comes before one with the same beginning.
constexpr ForeignForm kForms[] = {
    // operators
    {"&&", Where::anywhere, "and", "write `and`; steps are overlapped by one `&`",
     "let x = a && b"},
    {"||", Where::anywhere, "or", "write `or`", "let x = a || b"},
    {"===", Where::anywhere, "==", "write `==`", "let x = a === b"},
    {"!==", Where::anywhere, "!=", "write `!=`", "let x = a !== b"},
    {"<>", Where::anywhere, "!=", "write `!=`", "let x = a <> b"},
    {"!", Where::anywhere, "not", "write `not`, or `!=` where two values differ", "let x = !a"},
    {"**", Where::anywhere, "*", "there is no power: write `x * x`, or a loop", "let x = a ** 2"},
    {"^", Where::operand, "*", "there are no powers and no operations on bits", "let x = a ^ 2"},
    {"...", Where::anywhere, "..", "a range leaves its end out: write `0..4` for 0, 1, 2 and 3",
     "let x = mb[0...3]"},
    {"..=", Where::anywhere, "..", "a range leaves its end out: write `..$next`",
     "let x = mb[0..=3]"},
    {"=>", Where::anywhere, "->", "write `->` before the type of a result, `>=` to compare",
     "def f() => int { return 1 }"},
    {"?", Where::operand, "then", "write `if condition then a else b`", "let x = a ? 1 : 2"},
    {"if", Where::operand, "then",
     "write `if condition then a else b`; a statement stands inside, `if condition { ... }`",
     "let x = 1 if a else 2"},
    {"is", Where::operand, "==", "write `==`", "let x = a is 3"},
    {"lambda", Where::anywhere, "",
     "a function has a name: write `def f(x: int) -> int { return ... }` beside the other declarations",
     "let x = lambda y: y + 1"},
    {":", Where::index, "..", "write `$left..$right$by`", "let x = mb[0:4]"},
    // statements
    {"=", Where::argument, ":", "an argument follows its name and a colon: write `$name: $right`",
     "let x = f(a, rate = 0.1)"},
    {"+=", Where::declared, "=", "write `$name = $name + $rest`", "x += 1"},
    {"-=", Where::declared, "=", "write `$name = $name - $rest`", "x -= a + b"},
    {"*=", Where::declared, "=", "write `$name = $name * $rest`", "x *= 2"},
    {"/=", Where::declared, "=", "write `$name = $name / $rest`", "x /= 2"},
    {"%=", Where::declared, "=", "write `$name = $name % $rest`", "x %= 2"},
    {"++", Where::declared, "", "write `$name = $name + 1`", "x++"},
    {"--", Where::declared, "", "write `$name = $name - 1`", "x--"},
    {":=", Where::declared, "=", "write `let $name = $rest`", "x := a"},
    {":=", Where::let, "=", "write `=`", "let x := a"},
    {"==", Where::let, "=", "`==` compares; a name is given its value with `=`", "let x == a"},
    {"int", Where::statement, "let",
     "write `let`, or `var` for a value that changes; the type follows from the value",
     "int x = a"},
    {"float", Where::statement, "let",
     "write `let`, or `var` for a value that changes; the type follows from the value",
     "float x = a"},
    {"auto", Where::statement, "let", "write `let`, or `var` for a value that changes",
     "auto x = a"},
    {"const", Where::statement, "let", "write `let`", "const x = a"},
    {"val", Where::statement, "let", "write `let`", "val x = a"},
    {"elif", Where::clause, "else if", "write `} else if ... {`",
     "if a { let x = 1 } elif b { let x = 2 }"},
    {"elseif", Where::clause, "else if", "write `} else if ... {`",
     "if a { let x = 1 } elseif b { let x = 2 }"},
    {"while", Where::clause, "if",
     "every loop is counted: write `repeat n { ... }` or `for i in 0..n { ... }`",
     "while a > 0 { F c }"},
    {"loop", Where::clause, "if true",
     "every loop is counted: write `repeat n { ... }` or `for i in 0..n { ... }`", "loop { F c }"},
    // steps
    {"f", Where::statement, "F", "a pass is a capital letter: write `F $rest`", "f a"},
    {"b", Where::statement, "B", "a pass is a capital letter: write `B $rest`", "b stage[0] mb[1]"},
    {"bi", Where::statement, "BI", "a pass is written in capital letters: `BI $rest`", "bi a"},
    {"bw", Where::statement, "BW", "a pass is written in capital letters: `BW $rest`", "bw a"},
    {"fwd", Where::statement, "F", "write `F $rest`", "fwd a"},
    {"bwd", Where::statement, "B", "write `B $rest`", "bwd a"},
    {"forward", Where::statement, "F", "write `F $rest`", "forward stage[0] mb[1]"},
    {"backward", Where::statement, "B", "write `B $rest`", "backward a"},
    {",", Where::step, ";", "steps are separated by `;` or line ends, and `&` overlaps them",
     "F a, B a"},
    // declarations
    {"fn", Where::item, "def", "write `def`", "fn f() -> int { return 1 }"},
    {"func", Where::item, "def", "write `def`", "func f() -> int { return 1 }"},
    {"function", Where::item, "def", "write `def`", "function f() -> int { return 1 }"},
    {"import", Where::item, "use",
     "write `use $path`, which names one `.pipe` file: a path from here, or one of `std`",
     "import std.schedules.zbv"},
    {"from", Where::item, "use",
     "write `use $path`, which names one `.pipe` file: a path from here, or one of `std`",
     "from std.schedules import zbv"},
    {"include", Where::item, "use",
     "write `use $path`, which names one `.pipe` file: a path from here, or one of `std`",
     "include \"lib/mine.pipe\""},
    {"using", Where::item, "use",
     "write `use $path`, which names one `.pipe` file: a path from here, or one of `std`",
     "using std.schedules.zbv"},
};

}  // namespace

std::span<const ForeignForm> foreign_forms() { return kForms; }

}  // namespace piper::parse
