import t from 'tap';
import { configFor } from './config.js';

t.test('a terminal gets warnings and errors, a file everything', async (t) => {
  t.equal(configFor({}, { isTTY: true }).log_level, 'warn');
  t.equal(configFor({ ZEROFLEET_LOG_LEVEL: '' }, { isTTY: true }).log_level, 'warn');
  t.equal(configFor({ ZEROFLEET_LOG_LEVEL: 'debug' }, { isTTY: true }).log_level, 'debug');
  t.equal(configFor({}, {}).log_level, 'info');
});
