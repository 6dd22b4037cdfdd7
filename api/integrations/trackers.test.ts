/** Integrations of a document: what is accepted, and the errors of the rest. */
import t from 'tap';
import type { Integration, Job, Problem } from '../../contracts/index.js';
import { AddressPolicy } from '../../platform/outgoing/addresses.js';
import { startTestStack } from '../testing/stack.js';
import { Trackers } from './trackers.js';

t.test('integrations of a document', async (t) => {
  const url = 'https://mlflow.example.com';
  const mlflowServers = new Map(Object.entries({ main: { url }, lab: { url, projects: ['lab'] } }));
  const wandbServers = new Map([['cloud', { url: 'https://api.wandb.ai', token: 'key' }]]);
  const stack = await startTestStack({ trackers: { mlflow: mlflowServers, wandb: wandbServers } });
  t.teardown(() => stack.close());
  const { dataset } = (await stack.createJob()).spec.data;
  const create = async (integrations: unknown, headers = {}) => {
    const payload = {
      model: { preset: 'llama-tiny' },
      data: { dataset },
      train: { steps: 5, sequence_length: 16 },
      integrations,
    };
    return stack.request({ method: 'POST', url: '/v1/jobs', payload, headers });
  };
  const mlflow = { type: 'mlflow', experiment: 'e' };
  const wandb = { type: 'wandb', project: 'p 1' };
  const given = [
    { ...mlflow, server: 'main', run_name: 'mine' },
    { ...mlflow, url: `${url}/base` },
    { ...wandb, server: 'cloud', entity: 'team', run_name: 'mine' },
  ];
  t.strictSame((await create(given)).json<Job>().spec.integrations, given);
  t.strictSame((await create([])).json<Job>().spec.integrations, []);

  const refused: [unknown, string, string][] = [
    [{ ...mlflow, server: 'mian' }, '/integrations/0/server', 'integration_server_not_found'],
    [{ ...mlflow, server: 'lab' }, '/integrations/0/server', 'integration_server_not_found'],
    [{ ...mlflow, url: 'http://mlflow.example.com' }, '/integrations/0/url', 'integration_url_refused'],
    [{ ...mlflow, url: 'https://127.0.0.1:5000' }, '/integrations/0/url', 'integration_url_refused'],
    [{ ...mlflow, url: 'https://me:password@mlflow.example.com' }, '/integrations/0/url', 'wrong_format'],
    [{ ...mlflow, url: 'https://mlflow.example.com?token=x' }, '/integrations/0/url', 'wrong_format'],
    [{ ...mlflow, server: 'main', url }, '/integrations/0', 'exactly_one_of'],
    [mlflow, '/integrations/0', 'exactly_one_of'],
    [{ ...mlflow, server: 'main', type: 'comet' }, '/integrations/0/type', 'unknown_value'],
    [{ ...mlflow, server: 'main', token: 'x' }, '/integrations/0/token', 'unknown_field'],
    [{ type: 'mlflow', server: 'main' }, '/integrations/0/experiment', 'missing_field'],
    [{ ...mlflow, server: 'main', experiment: ' ' }, '/integrations/0/experiment', 'wrong_format'],
    [{ ...mlflow, server: 'main', project: 'p' }, '/integrations/0/project', 'field_without_effect'],
    [{ ...wandb, server: 'main' }, '/integrations/0/server', 'integration_server_not_found'],
    [{ ...wandb, url }, '/integrations/0/url', 'field_without_effect'],
    [{ ...wandb, server: 'cloud', experiment: 'e' }, '/integrations/0/experiment', 'field_without_effect'],
    [{ ...wandb, server: 'cloud', project: undefined }, '/integrations/0/project', 'missing_field'],
    [{ ...wandb, server: 'cloud', project: 'a/b' }, '/integrations/0/project', 'wrong_format'],
    [{ ...wandb, server: 'cloud', entity: ' ' }, '/integrations/0/entity', 'wrong_format'],
  ];
  for (const [integration, pointer, code] of refused) {
    const reply = await create([integration]);
    t.equal(reply.statusCode, 422, pointer);
    t.match(reply.json<Problem>().errors, [{ pointer, code }], JSON.stringify(integration));
  }
  const [{ suggestion } = {}] = (await create([{ ...mlflow, server: 'mian' }])).json<Problem>().errors ?? [];
  t.equal(suggestion, 'main');
});

t.test('credentials of a server', async (t) => {
  const url = 'https://mlflow.example.com';
  const servers = {
    token: { url, token: 'tok' },
    basic: { url, username: 'Aladdin', password: 'open sesame' },
    none: { url },
    lab: { url, projects: ['lab'] },
  };
  const byName = new Map(Object.entries(servers));
  const trackers = new Trackers({ mlflow: byName, wandb: byName }, new AddressPolicy([]));
  const find = (server: string, project = 'default', type: Integration['type'] = 'mlflow') =>
    trackers.find({ type, server }, project);
  t.same(find('token'), { url, authorization: 'Bearer tok' });
  // The example of RFC 7617.
  t.same(find('basic'), { url, authorization: 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==' });
  t.same(find('none'), { url, authorization: null });
  t.equal(find('lab'), null);
  t.same(find('lab', 'lab'), { url, authorization: null });
  // As the client of W&B 0.30 sends `tok`.
  t.same(find('token', 'default', 'wandb'), { url, authorization: 'Basic YXBpOnRvaw==' });
});
