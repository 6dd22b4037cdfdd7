import t from 'tap';
import type { Job } from '../../../contracts/index.js';
import { failuresPerSecond } from './failure-rate.js';

const DAY = 86_400;
const at = (seconds: number) => new Date(seconds * 1000).toISOString();

t.test("the estimate starts at one failure a day and follows the job's history", async (t) => {
  t.equal(failuresPerSecond({ state_history: [] }, new Date(0)), 1 / DAY);
  const stateHistory: Job['state_history'] = [
    { state: 'queued', reason: null, at: at(0) },
    { state: 'running', reason: null, at: at(500) },
    { state: 'recovering', reason: 'rank_lost', at: at(600) },
    { state: 'running', reason: null, at: at(700) },
  ];
  t.equal(failuresPerSecond({ state_history: stateHistory }, new Date(1000 * 1000)), 2 / (DAY + 100 + 300));
});
