/** Variables of what jobs and graders reach outside: webhooks, experiment trackers, model servers, and Python. */
import { cidrList, nonEmpty } from './config-values.js';
import type { Setting } from './setting.js';
import { trackerServers } from './tracker-servers.js';

export const OUTSIDE_SETTINGS = [
  {
    key: 'webhook_allow',
    fallback: 'none',
    help: 'Private address ranges, e.g. `10.1.0.0/16,fd00::/8`, to which webhooks, [integrations](integrations.md) and [graders](graders.md) may send, also without TLS; `none`: only public addresses over TLS.',
    parse: cidrList,
  },
  {
    key: 'mlflow_credentials',
    fallback: 'none',
    help: 'JSON: MLflow servers that jobs may name, each with URL and credentials ([integrations](integrations.md#servers-with-credentials)). Only the API uses them.',
    parse: trackerServers,
  },
  {
    key: 'wandb_credentials',
    fallback: 'none',
    help: 'JSON: the same for servers of Weights & Biases.',
    parse: trackerServers,
  },
  {
    key: 'grader_credentials',
    fallback: 'none',
    help: 'JSON: the same for OpenAI-compatible servers that [graders](graders.md#score_model) may name. The URL ends before `/chat/completions`. The API and the agents use them.',
    parse: trackerServers,
  },
  {
    key: 'grader_python',
    fallback: 'python3',
    help: 'Python 3.9 or later that runs `python` [graders](graders.md#python). Sources can import what is installed for it.',
    parse: nonEmpty,
  },
] as const satisfies readonly Setting[];
