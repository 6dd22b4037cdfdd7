/**
 * Tests with the native core that a checkpoint of any number of ranks loads on any number of ranks and continues with
 * the same bits.
 */
import { testAllWorlds } from '../testing/checks/all-worlds.js';

for (const trained of ['whole', 'adapter'] as const) testAllWorlds(trained, 5);
