/** Variant of damage.test.ts with more positions. */
import t from 'tap';
import { checkCuts, checkFlips } from '../../testing/checks/damaged-loads.js';

const STRIDE = { manifest: 97, shard: 13 };

t.test('one changed bit in every region of every object is detected', (t) => checkFlips(t, STRIDE));

t.test('every truncated or missing object is detected', (t) => checkCuts(t, STRIDE));
