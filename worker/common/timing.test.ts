import t from 'tap';
import { loadConfig } from '../../platform/config/config.js';
import { DEFAULT_TIMING, timingOf } from './timing.js';

t.test('an agent that is told to go waits for saves as long as the configuration says', async (t) => {
  t.same(timingOf(loadConfig({})), DEFAULT_TIMING);
  t.same(timingOf(loadConfig({ ZEROFLEET_SAVE_SECONDS: '900' })), { ...DEFAULT_TIMING, drain_ms: 900_000 });
});
