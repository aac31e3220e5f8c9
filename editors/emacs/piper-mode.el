;;; piper-mode.el --- Piper programs, with eglot -*- lexical-binding: t -*-
;; (load "/path/to/editors/emacs/piper-mode.el"); `eglot' is in Emacs 29, and in the package elpa-eglot before.
(defvar piper-keywords
  '("and" "as" "at" "backward" "by" "cursor" "def" "else" "false" "for" "freeze" "fuse" "if" "in" "input" "into" "let" "loss" "machine" "mesh" "model" "not"
    "offload" "on" "or" "order" "over" "param" "partition" "place" "rank" "recompute" "region" "repeat" "replicate" "require" "return"
    "schedule" "shard" "split" "stream" "then" "train" "true" "tune" "use" "var" "weight" "with"))
(defun piper-indent-line ()
  "Indent by open brackets; a line that closes some stands with what opened them."
  (interactive)
  (let ((depth (save-excursion
                 (back-to-indentation)
                 (let ((open (car (syntax-ppss))))
                   (while (looking-at "[])}]") (setq open (1- open)) (forward-char))
                   (max 0 open)))))
    (if (<= (current-column) (current-indentation))
        (indent-line-to (* 4 depth))
      (save-excursion (indent-line-to (* 4 depth))))))
(define-derived-mode piper-mode prog-mode "Piper"
  "Programs of Piper."
  (modify-syntax-entry ?/ ". 12" (syntax-table))
  (modify-syntax-entry ?\n ">" (syntax-table))
  (setq-local comment-start "// " comment-end "" indent-tabs-mode nil tab-width 4 indent-line-function #'piper-indent-line)
  (setq-local font-lock-defaults
              `(((,(regexp-opt piper-keywords 'symbols) . font-lock-keyword-face)
                 ("\\_<\\(F\\|R\\|B\\|BI\\|BW\\)\\_>" . font-lock-builtin-face)
                 ("^\\s-*\\(names\\) +\\(\\w+\\)\\s-*\\(?:{\\|//\\|$\\)" (1 font-lock-keyword-face) (2 font-lock-function-name-face))
                 ("\\_<\\(?:def\\|schedule\\|model\\|train\\|machine\\|mesh\\|param\\) +\\(\\w+\\)" 1 font-lock-function-name-face)))))
(add-to-list 'auto-mode-alist '("\\.pipe\\'" . piper-mode))
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(piper-mode "piper" "lsp")))
(add-hook 'piper-mode-hook #'eglot-ensure)
(provide 'piper-mode)
