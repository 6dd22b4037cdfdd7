import t from 'tap';
import { linkTo, parseRoute } from '../app/route.js';
import { filtersOf, kindOf, operationText, requestOf } from './audit.js';

t.test('filters stay in the address, and become a request', async (t) => {
  const none = filtersOf(new URLSearchParams());
  t.strictSame(JSON.parse(JSON.stringify(requestOf(none))), {});
  const filters = {
    operation: 'cancelJob',
    resource: 'job_1',
    principal_id: 'key_1',
    since: '2026-11-27T20:00',
    until: '2026-11-28T00:00',
  };
  t.strictSame(filtersOf(parseRoute(linkTo(['admin'], { tab: 'audit', ...filters })).query), filters);
  t.strictSame(requestOf(filters), {
    ...filters,
    since: new Date(2026, 10, 27, 20).toISOString(),
    until: new Date(2026, 10, 28).toISOString(),
  });
});

t.test('entries in words', async (t) => {
  t.equal(operationText('revokeApiKey'), 'revoke api key');
  t.same(
    (['succeeded', 'refused', 'failed'] as const).map((outcome) => kindOf({ outcome })),
    ['good', 'warn', 'bad'],
  );
});
