import t, { type Test } from 'tap';
import { StsStandIn } from '../../../platform/testing/sts-stand-in.js';
import { testSpec } from '../../testing/start-message.js';
import { AttemptRole } from './attempt-role.js';
import { isRefusal } from './refusal.js';

const JOB = { id: 'job_01J00000000000000000000000', spec: testSpec() };
const ROLE = 'arn:aws:iam::123456789012:role/zf-attempt';

async function opened(t: Test) {
  const before = { ...process.env };
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AGENT', AWS_SECRET_ACCESS_KEY: 'secret' });
  const sts = new StsStandIn('fleet');
  const endpoint = await sts.listen();
  const bucket = { bucket: 'fleet', prefix: 'a', kms: true };
  const role = new AttemptRole({ role_arn: ROLE, bucket, endpoint, region: 'eu-central-1' });
  t.teardown(async () => {
    role.close();
    await sts.close();
    process.env = before;
  });
  return { sts, role };
}

t.test('a session has the name, the tags and the policy of its job', async (t) => {
  const { sts, role } = await opened(t);
  const given = await role.assume(JOB, `${JOB.id}-3`);
  const [[id, session]] = [...sts.sessions] as [[string, unknown]];
  t.match(session, {
    role: ROLE,
    name: `${JOB.id}-3`,
    seconds: 3600,
    tags: { 'zerofleet:job': JOB.id, 'zerofleet:from': JOB.id },
  });
  t.match(given, { access_key_id: id, secret_access_key: /secret/, session_token: /token/ });
  t.ok(Date.parse(given.expires_at) > Date.now());
  const judge = (action: string, key: string) =>
    sts.judge({ access_key_id: id, session_token: given.session_token, action, key });
  t.equal(judge('s3:PutObject', `a/jobs/${JOB.id}/checkpoints/x/shard`), null);
  t.equal(judge('s3:PutObject', `a/jobs/${JOB.id}/spec.json`), 'AccessDenied');
  t.equal(judge('s3:DeleteObject', `a/jobs/${JOB.id}/checkpoints/x/shard`), 'AccessDenied');
  t.equal(judge('s3:GetObject', 'a/jobs/job_other/spec.json'), 'AccessDenied');
  t.equal(judge('s3:ListBucket', ''), 'AccessDenied');
});

t.test('a refusal names its cause and is distinguished from transient errors', async (t) => {
  const { sts, role } = await opened(t);
  sts.mood = 'refusing';
  const refused = await role.assume(JOB, 'name').catch((error: unknown) => error);
  t.match(refused, { code: 'credentials_unavailable', message: /AccessDenied.*trust policy.*zerofleet:job/ });
  t.equal(isRefusal(refused), true);
  for (const mood of ['throttling', 'away'] as const) {
    sts.mood = mood;
    sts.asked = 0;
    const failed = await role.assume(JOB, 'name').catch((error: unknown) => error);
    t.match(failed, { code: 'credentials_unavailable' }, mood);
    t.equal(isRefusal(failed), false, mood);
    t.equal(sts.asked, 3, 'the SDK retried it');
  }
});
