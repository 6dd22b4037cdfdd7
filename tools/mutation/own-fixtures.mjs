// Preloaded in each test process of a mutation run: gives it directories of its own for `t.testdir()`. Two runners run the same test file at
// once, and tap names a directory after the test and the arguments: with equal names one process removes what the other has just made, and
// its mutant counts as caught.
process.argv.push(`process-${process.pid}`);
