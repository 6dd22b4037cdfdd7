import type { Test } from 'tap';
import { createInspector, type Inspector } from '../inspection/inspector.js';
import { DEFAULT_LIMITS } from '../limits.js';

/** Inspection threads like the API's, until the test ends. */
export function startTestInspector(t: Test): Inspector {
  const inspector = createInspector(DEFAULT_LIMITS);
  t.teardown(() => inspector.close());
  return inspector;
}
