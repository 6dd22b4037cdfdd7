/** Variant of all-worlds.test.ts with up to 8 ranks. */
import { testAllWorlds } from '../testing/checks/all-worlds.js';

for (const trained of ['whole', 'adapter'] as const) testAllWorlds(trained, 8);
