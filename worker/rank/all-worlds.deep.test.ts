/** Variant of all-worlds.test.ts with up to 8 ranks. */
import { testAllWorlds } from '../testing/checks/all-worlds.js';

for (const what of ['whole', 'adapter'] as const) testAllWorlds(what, 8);
