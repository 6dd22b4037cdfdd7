// Preloaded in each test process of a mutation run: gives it fixtures of its own (`t.testdir()`). Two runners run the same test file at
// once, and tap names fixtures after the test alone: one process would remove what the other has just made, and its mutant count as caught.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

process.env.TAP_CWD = mkdtempSync(join(tmpdir(), 'fixtures-'));
