// A line end is a token where a statement can end, unless the next line goes on with `backward`.
#include <string.h>

#include "tree_sitter/parser.h"

enum { LINE_END };

void *tree_sitter_piper_external_scanner_create(void) { return NULL; }
void tree_sitter_piper_external_scanner_destroy(void *payload) { (void)payload; }
unsigned tree_sitter_piper_external_scanner_serialize(void *payload, char *buffer) { return (void)payload, (void)buffer, 0; }
void tree_sitter_piper_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) { (void)payload, (void)buffer, (void)length; }

static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
static bool is_of_name(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// Behind blanks and whole comments.
static void go_to_word(TSLexer *lexer) {
  for (;;) {
    while (is_blank(lexer->lookahead)) lexer->advance(lexer, false);
    if (lexer->lookahead != '/') return;
    lexer->advance(lexer, false);
    if (lexer->lookahead != '/') return;
    while (lexer->lookahead != '\n' && !lexer->eof(lexer)) lexer->advance(lexer, false);
  }
}

static bool reads(TSLexer *lexer, const char *word) {
  for (; *word != '\0'; ++word) {
    if (lexer->lookahead != *word) return false;
    lexer->advance(lexer, false);
  }
  return !is_of_name(lexer->lookahead);
}

bool tree_sitter_piper_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid_symbols) {
  (void)payload;
  if (!valid_symbols[LINE_END]) return false;
  bool line_end = false;
  while (is_blank(lexer->lookahead)) {
    line_end = line_end || lexer->lookahead == '\n';
    lexer->advance(lexer, true);
  }
  if (!line_end) return false;  // a comment on this line is read first, then this is asked again
  lexer->mark_end(lexer);
  lexer->result_symbol = LINE_END;
  go_to_word(lexer);
  return !reads(lexer, "backward");
}
