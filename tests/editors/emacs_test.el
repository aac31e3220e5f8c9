;;; emacs_test.el --- Emacs with the set-up of editors/emacs, in batch -*- lexical-binding: t -*-
;; emacs --batch -q -l package -f package-initialize -l ROOT/editors/emacs/piper-mode.el -l emacs_test.el -f ert-run-tests-batch-and-exit
(require 'ert)
(require 'eglot)
(require 'xref)
(defvar piper-test-program
  (with-temp-buffer
    (insert-file-contents (expand-file-name "net.pipe" (file-name-directory load-file-name)))
    (buffer-string)))

(defun piper-test-wait (what condition)
  "Wait until CONDITION is true, which is WHAT."
  (let ((end (+ (float-time) 30)) (value nil))
    (while (and (not (setq value (funcall condition))) (< (float-time) end))
      (accept-process-output nil 0.01))
    (unless value (ert-fail (format "waited for: %s" what)))
    value))

(defmacro piper-test-with-program (&rest body)
  "Run BODY in a buffer of the program that eglot manages."
  `(let* ((folder (make-temp-file "piper" t))
          (file (expand-file-name "net.pipe" folder))
          (eglot-sync-connect 10) (eglot-autoshutdown t) (eglot-events-buffer-size 0) (inhibit-message t))
     (write-region piper-test-program nil file)
     (with-current-buffer (find-file-noselect file)
       (unwind-protect
           (progn
             (should (eq major-mode 'piper-mode))
             (unless (eglot-current-server)
               (apply #'eglot--connect (eglot--guess-contact)))
             (piper-test-wait "a server" (lambda () (and (eglot-current-server) (eglot-managed-p))))
             ,@body)
         (set-buffer-modified-p nil)
         (kill-buffer)
         (delete-directory folder t)))))

(defun piper-test-go (before after)
  "Put point between BEFORE and AFTER."
  (goto-char (point-min))
  (search-forward (concat before after))
  (backward-char (length after)))

(defun piper-test-codes ()
  "The codes of the diagnostics that are shown."
  (mapcar (lambda (each) (let ((text (flymake-diagnostic-text each))) (and (string-match "P[0-9]\\{4\\}" text) (match-string 0 text)))) (flymake-diagnostics)))

(ert-deftest piper-diagnostics-follow-the-text ()
  (piper-test-with-program
   (flymake-mode 1)
   (piper-test-go "plain(" "pp, 4)")
   (insert "q")
   (eglot--signal-textDocument/didChange)
   (piper-test-wait "a diagnostic" (lambda () (flymake-start) (flymake-diagnostics)))
   (should (string-match-p "qpp" (flymake-diagnostic-text (car (flymake-diagnostics)))))
   (piper-test-go "plain(q" "pp, 4)")
   (delete-char -1)
   (eglot--signal-textDocument/didChange)
   (piper-test-wait "no diagnostic" (lambda () (flymake-start) (null (flymake-diagnostics))))))

(ert-deftest piper-rename-and-format ()
  (piper-test-with-program
   (piper-test-go "let la" "st")
   (eglot-rename "final")
   (should (equal (buffer-string) (replace-regexp-in-string "last" "final" piper-test-program t)))
   (erase-buffer)
   (insert (replace-regexp-in-string "    let last" " let  last" piper-test-program t))
   (eglot-format-buffer)
   (should (equal (buffer-string) piper-test-program))))

(ert-deftest piper-definition-completion-hover ()
  (piper-test-with-program
   (piper-test-go "pl" "ain(pp")
   (let ((found (xref-backend-definitions 'eglot (xref-backend-identifier-at-point 'eglot))))
     (should (= (length found) 1)))
   (piper-test-go "plain(pp, 4)" "\n")
   (insert "\n    repl")
   (eglot--signal-textDocument/didChange)
   (let* ((capf (eglot-completion-at-point)) (table (nth 2 capf)))
     (should (member "replicate" (all-completions "repl" table)))
     (should-not (member "model" (all-completions "" table))))))

(ert-deftest piper-indents-by-brackets ()
  (with-temp-buffer
    (let ((eglot-server-programs nil))
      (delay-mode-hooks (piper-mode))
      (insert (replace-regexp-in-string "^ +" "" piper-test-program))
      (let ((inhibit-message t)) (indent-region (point-min) (point-max)))
      (should (equal (buffer-string) piper-test-program)))))
