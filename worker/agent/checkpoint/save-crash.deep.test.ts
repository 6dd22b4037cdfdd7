/**
 * Variant of save-crash.test.ts in which a save dies at each call to the file system, those that only read included.
 */
import t from 'tap';
import { SaveCrashes } from '../../testing/checks/save-crashes.js';

const crashes = await SaveCrashes.start(t);

for (const moment of ['before', 'after'] as const)
  t.test(`killed ${moment} every call to the file system, a save is done or not done`, (t) =>
    crashes.checkEach(t, 'file system', moment),
  );
