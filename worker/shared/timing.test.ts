import t from 'tap';
import { loadConfig } from '../../platform/config/config.js';
import { DEFAULT_TIMING, timingOf } from './timing.js';

t.test('the drain grace period comes from the configuration', async (t) => {
  t.same(timingOf(loadConfig({})), DEFAULT_TIMING);
  t.same(timingOf(loadConfig({ ZEROFLEET_SAVE_SECONDS: '900' })), { ...DEFAULT_TIMING, drain_ms: 900_000 });
});
