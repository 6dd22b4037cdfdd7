/** The command line against the real API, in this process: links that show one job. */
import t from 'tap';
import type { Me } from '../../contracts/index.js';
import { start } from './command-line.js';

t.test('links of a job', async (t) => {
  const { stack, zerofleet, url } = await start(t);
  const { id } = await stack.createJob({ name: 'mine' });
  t.match(await zerofleet(['shares', 'mine']), { code: 0, out: 'no links' });
  const made = await zerofleet(['shares', 'create', 'mine', '--expires', '12h', '--description', 'a note']);
  t.match(made, { code: 0, err: /^shr_\w{26}: whoever has the link can read the job until 20/ });
  const [base, token] = made.out.split('/#/shared/');
  t.equal(base, url);
  const headers = { authorization: `Bearer ${token}` };
  const { share } = (await stack.app.inject({ url: '/v1/me', headers })).json<Me>();
  t.match(share, { job_id: id, description: 'a note' });
  t.equal(Date.parse(share?.expires_at ?? '') > Date.now() + 11 * 3_600_000, true);
  t.match(await zerofleet(['--api-key', token ?? '', 'whoami']), {
    code: 0,
    out: new RegExp(`^${share?.id} until 20.*\nreads ${id} only$`),
  });
  t.match(await zerofleet(['--api-key', token ?? '', 'pause', id]), { code: 1, err: /outside_share/ });
  t.match(await zerofleet(['shares', 'list', id]), {
    code: 0,
    out: /^SHARE .*\nshr_\w{26} +20\S+Z .* a note$/,
  });
  t.match(await zerofleet(['shares', 'revoke', 'mine', share?.id ?? '']), { code: 0 });
  t.match(await zerofleet(['shares', 'revoke', 'mine', share?.id ?? '']), {
    code: 1,
    err: /share_not_found/,
  });
  for (const expires of ['0d', '7', 'soon', '7w'])
    t.match(await zerofleet(['shares', 'create', 'mine', '--expires', expires]), {
      code: 2,
      err: /such as 7d/,
    });
  t.match(await zerofleet(['shares', 'create', 'mine', '--expires', '91d']), {
    code: 1,
    err: /expires_in_seconds/,
  });
});
