import t from 'tap';
import { failuresOf } from './main.js';

t.test('failures of the command', async (t) => {
  const good = {
    findings: [],
    server_errors: 0,
    event_loop_delay_p99_ms: 49,
    lease_error: null,
    rss_mib: { before: 100, after: 150 },
  };
  t.strictSame(failuresOf(good), []);
  t.match(failuresOf({ ...good, server_errors: 1 }), [/server error/]);
  t.match(failuresOf({ ...good, event_loop_delay_p99_ms: 50 }), [/event loop/]);
  t.match(failuresOf({ ...good, lease_error: 'stale_epoch' }), [/lease of a job was lost: stale_epoch/]);
  t.match(failuresOf({ ...good, rss_mib: { before: 100, after: 151 } }), [/memory/]);
  t.strictSame(failuresOf({ ...good, rss_mib: null }), []);
});
