// Preloaded in each test process of a mutation run: gives it its own directories for `t.testdir()`. Two runners run the
// same test file concurrently, and tap names a directory after the test and the arguments. With equal names one process
// would remove the directory of another, and its mutant would count as killed.
process.argv.push(`process-${process.pid}`);
