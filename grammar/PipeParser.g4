// Grammar of `.pipe`; grammar/README.md explains every construct.
//
// Between lexer and parser, frontend/parse/token_filter makes SEMI the one separator: one after every statement and item,
// never doubled, also before `}` and the end of the file. A line end is a SEMI when the token before it can
// end a statement and no `(` or `[` is open. Brackets always match here, because the filter reports and repairs them.
//
// Every decision needs one token of lookahead. Each rule has a name in messages
// ("expected a device set such as `p[0]`"), and a place where parsing goes on after an error (frontend/parse/error_strategy).
parser grammar PipeParser;

options { tokenVocab = PipeLexer; }

program : (item SEMI)* EOF ;

item
    : USE name (DOT name)*                                  # useItem
    | PARAM name (ASSIGN | IN) expr                         # paramItem
    | MESH meshHead LPAREN axis (COMMA axis)* RPAREN        # meshItem
    | (DEF | SCHEDULE | MODEL) functionHead block           # functionItem
    | TRAIN trainHead block                                 # trainItem
    | MACHINE machineHead block                             # machineItem
    | NAMES name namesBody                                  # namesItem
    ;
namesBody : LBRACE (namesLine SEMI)* RBRACE ;
// `config { ... }`, `ignore "..."`, or the path of parameters and their tensor in a file.
namesLine
    : name (factsBody | STRING (COMMA STRING)* | pathIndex? (DOT pathPart)* COLON fileTensor)
    | tuple pathIndex? COLON fileTensor
    ;
factsBody : LBRACE (facts SEMI)* RBRACE ;
facts : pair (COMMA pair)* ;
pathPart : (name | tuple) pathIndex? ;
tuple : LPAREN name (COMMA name)* RPAREN ;
// The index of a repeated part; after the last part, the dimensions of the parameter.
pathIndex : LBRACKET pathDim (COMMA pathDim)* RBRACKET ;
pathDim : NUMBER | name (ASSIGN factor+)? ;
factor : name (COLON NUMBER)? ;
fileTensor : STRING LBRACKET fileDim (COMMA fileDim)* RBRACKET (OR name)? ;
fileDim : name+ ;
meshHead : name (ASSIGN name AS)? ;
functionHead : name params (ARROW kind)? ;
trainHead : name ASSIGN modelCall ON name ;
machineHead : name ON name ;
modelCall : primary ;
params : LPAREN (param (COMMA param)*)? RPAREN ;
param : name COLON kind (ASSIGN expr)? ;
kind
    : (ORDER | CURSOR)
    | name (LBRACKET dim (COMMA dim)* RBRACKET)?
    | LBRACKET kind RBRACKET
    ;
dim : name (COLON expr)? ;
axis : pair ;
extent : pair ;
setting : pair ;
pair : name COLON expr ;
name : NAME ;

block : LBRACE (stmt SEMI)* RBRACE ;

stmt
    : LET name (COMMA name)* ASSIGN expr                    # letStmt
    | VAR name ASSIGN expr                                  # varStmt
    | primary ((ASSIGN | COLON) expr)?                      # simpleStmt
    | FOR each block                                        # forStmt
    | REPEAT count block                                    # repeatStmt
    | IF condition block (ELSE elseBranch)*                 # ifStmt
    | RETURN expr                                           # returnStmt
    | REQUIRE condition (ELSE STRING)?                      # requireStmt
    | INPUT param (COMMA param)*                            # inputStmt
    | WEIGHT weightDecl (COMMA weightDecl)* (ASSIGN expr)?  # weightStmt
    | REGION name block                                     # regionStmt
    | LOSS expr                                             # lossStmt
    // Directives, by form: ir/directive/directives.def has a row for each.
    | PARTITION region INTO extent settings?                # directiveStmt
    | SPLIT name INTO extent (COMMA extent)* (IN targets)?  # directiveStmt
    | PLACE targets ON devices                              # directiveStmt
    | REPLICATE targets OVER axes settings?                 # directiveStmt
    | SHARD targets OVER axes BY dimensions settings?       # directiveStmt
    | (RECOMPUTE | OFFLOAD | FUSE | FREEZE) targets settings?  # directiveStmt
    | TUNE targets settings                                 # directiveStmt
    | STREAM name COLON targets settings?                   # directiveStmt
    | ORDER (expr | block)                                  # orderStmt
    | RANK each block                                       # rankStmt
    | CURSOR name ASSIGN expr (BACKWARD expr)?              # cursorStmt
    | AT slot COLON step                                    # atStmt
    | step                                                  # stepStmt
    ;
count : expr ;
condition : expr ;
slot : expr ;
elseBranch : (IF condition)? block ;
region : primary ;
devices : expr ;
weightDecl : name LBRACKET dim (COMMA dim)* RBRACKET ;
settings : WITH setting (COMMA setting)* ;
axes : name (COMMA name)* ;
dimensions : name (COMMA name)* ;
each : binding (COMMA binding)* ;
binding : name IN expr ;
step : member (AMPERSAND member)* ;
member : op | block ;
op : PASS primary? ;
targets : target (COMMA target)* ;
target : PASS? primary ;

expr
    : primary                                                                       # primaryExpr
    | MINUS expr                                                                    # unaryExpr
    | expr (STAR | SLASH | PERCENT | CONTRACT) expr                                 # binaryExpr
    | expr (PLUS | MINUS) expr                                                      # binaryExpr
    | expr RANGE expr                                                               # binaryExpr
    | expr BY expr                                                                  # binaryExpr
    | expr (EQUAL | NOT_EQUAL | LESS | LESS_EQUAL | GREATER | GREATER_EQUAL) expr   # binaryExpr
    | NOT expr                                                                      # unaryExpr
    | expr AND expr                                                                 # binaryExpr
    | expr OR expr                                                                  # binaryExpr
    | IF expr THEN expr ELSE expr                                                   # conditionalExpr
    ;
primary : atom trailer* coordinate* ;
trailer
    : LBRACKET elems RBRACKET                               # indexTrailer
    | DOT name                                              # fieldTrailer
    | LPAREN (arg (COMMA arg)*)? RPAREN                     # callTrailer
    ;
coordinate : name LBRACKET elems RBRACKET ;
arg : expr (COLON argValue)? | AT COLON argValue | op ;
argValue : expr | op ;
elems : expr (COMMA expr)* ;
atom
    : (NAME | MODEL | NUMBER | STRING | TRUE | FALSE)       # wordAtom
    | LPAREN expr RPAREN                                    # parenAtom
    | LBRACKET (FOR each COLON elems | elems)? RBRACKET     # listAtom
    ;
