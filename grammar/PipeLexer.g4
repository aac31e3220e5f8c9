// Tokens of `.pipe`. The lexer never fails: text that is not a token becomes BAD_NUMBER, UNCLOSED_STRING or
// UNKNOWN, which frontend/parse reports and removes. It also turns line ends into SEMI tokens (see PipeParser.g4).
lexer grammar PipeLexer;

channels { COMMENTS }

AND : 'and' ;
AS : 'as' ;
AT : 'at' ;
BACKWARD : 'backward' ;
BY : 'by' ;
CURSOR : 'cursor' ;
DEF : 'def' ;
ELSE : 'else' ;
FALSE : 'false' ;
FOR : 'for' ;
FREEZE : 'freeze' ;
FUSE : 'fuse' ;
IF : 'if' ;
IN : 'in' ;
INPUT : 'input' ;
INTO : 'into' ;
LET : 'let' ;
LOSS : 'loss' ;
MACHINE : 'machine' ;
MESH : 'mesh' ;
MODEL : 'model' ;
NOT : 'not' ;
OFFLOAD : 'offload' ;
ON : 'on' ;
OR : 'or' ;
ORDER : 'order' ;
OVER : 'over' ;
PARAM : 'param' ;
PARTITION : 'partition' ;
PLACE : 'place' ;
RANK : 'rank' ;
RECOMPUTE : 'recompute' ;
REGION : 'region' ;
REPEAT : 'repeat' ;
REPLICATE : 'replicate' ;
REQUIRE : 'require' ;
RETURN : 'return' ;
SCHEDULE : 'schedule' ;
SHARD : 'shard' ;
SPLIT : 'split' ;
STREAM : 'stream' ;
THEN : 'then' ;
TRAIN : 'train' ;
TRUE : 'true' ;
TUNE : 'tune' ;
USE : 'use' ;
VAR : 'var' ;
WEIGHT : 'weight' ;
WITH : 'with' ;
PASS : 'F' | 'R' | 'B' | 'BI' | 'BW' ;
// A keyword only where it begins an item; elsewhere frontend/parse/soft_keywords makes it a NAME.
NAMES : 'names' ;

LPAREN : '(' ;
RPAREN : ')' ;
LBRACKET : '[' ;
RBRACKET : ']' ;
LBRACE : '{' ;
RBRACE : '}' ;

ARROW : '->' ;
RANGE : '..' ;
DOT : '.' ;
COMMA : ',' ;
COLON : ':' ;
SEMI : ';' ;
EQUAL : '==' ;
NOT_EQUAL : '!=' ;
LESS_EQUAL : '<=' ;
GREATER_EQUAL : '>=' ;
LESS : '<' ;
GREATER : '>' ;
ASSIGN : '=' ;
PLUS : '+' ;
MINUS : '-' ;
STAR : '*' ;
SLASH : '/' ;
PERCENT : '%' ;
CONTRACT : '@' ;
AMPERSAND : '&' ;

NUMBER : [0-9]+ ('.' [0-9]+)? ([eE] [+-]? [0-9]+)? ('KiB' | 'MiB' | 'GiB' | 'ns' | 'us' | 'ms' | 's')? ;
BAD_NUMBER : [0-9]+ ('.' [0-9]+)? ([eE] [+-]? [0-9]+)? [a-zA-Z_] [a-zA-Z0-9_]* ;
NAME : [a-zA-Z_] [a-zA-Z0-9_]* ;
STRING : '"' ~["\n]* '"' ;
UNCLOSED_STRING : '"' ~["\n]* ;

NEWLINE : '\n' -> channel(HIDDEN) ;
SPACE : [ \t\r]+ -> skip ;
DOC : '///' ~[\n]* -> channel(COMMENTS) ;
COMMENT : '//' ~[\n]* -> channel(COMMENTS) ;
UNKNOWN : . ;
