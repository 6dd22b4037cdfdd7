import { createRuntime } from '../../graders/default-runtime.js';
import { GraderFault, type Graders } from '../../graders/grader.js';
import { gradersOf } from '../../graders/graders.js';
import { askServer } from '../../graders/model-servers.js';
import type { Config } from '../../platform/config/config.js';
import { AddressPolicy } from '../../platform/outgoing/addresses.js';
import { enabledTarget, type Webhooks } from '../../state/index.js';

/** Graders of jobs, by project. */
export interface ProjectGraders {
  of(project: string): Pick<Graders, 'grade'>;
  /** Ends all evaluations. Idempotent. */
  close(): Promise<void>;
}

export function openGraders(
  {
    webhook_allow,
    grader_python,
    grader_credentials: servers,
  }: Pick<Config, 'webhook_allow' | 'grader_python' | 'grader_credentials'>,
  store: Pick<Webhooks, 'webhookTarget'>,
): ProjectGraders {
  const runtime = createRuntime(grader_python, new AddressPolicy(webhook_allow));
  const of = (project: string) =>
    gradersOf({
      runtime,
      project,
      outside: {
        findWebhook: (id) => enabledTarget(store, project, id),
        askModel: async (question, signal) => {
          if (question.server === null)
            throw new GraderFault('model_unavailable', 'graders of jobs ask models of servers; set server');
          return askServer(question.server, question, { ...runtime.asking, servers, project }, signal);
        },
      },
    });
  return { of, close: () => runtime.close() };
}
