// RUN: mkdir -p %t.saved
// RUN: sdy-opt %s -sdy-save-module='dump-directory=%t.saved file-name=state dump-index=3' | filecheck %s
// RUN: filecheck %s --input-file %t.saved/03.state.mlir

// CHECK-LABEL: func.func @main
func.func @main() {
  return
}
