import t from 'tap';
import { checkEqual, digestsByStep } from '../support/step-digests.js';

t.test(
  '1, 2, 3 and 4 ranks, and 3 ranks with 2 threads each: the same state after each of 20 steps',
  async (t) => {
    checkEqual(t, [...(await digestsByStep(t, 1, [1, 2, 3, 4])), ...(await digestsByStep(t, 2, [3]))]);
  },
);
