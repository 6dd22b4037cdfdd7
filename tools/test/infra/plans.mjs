// Plans the examples with the real provider and dummy keys: detects errors that the mocked provider does not, such as
// values that AWS would refuse. The resulting environment of the programs must be a configuration that they accept.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compiledDir, inRoot } from '../../bootstrap/paths.mjs';
import { checkDependencies } from './dependencies.mjs';

const ACCOUNT = '123456789012';

/** Replaces the provider block of an example, so that AWS receives no requests. */
export const OFFLINE_PROVIDER = `provider "aws" {
  access_key                  = "none"
  secret_key                  = "none"
  allowed_account_ids         = null
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
}
`;

const VARIABLES = {
  account_id: ACCOUNT,
  certificate_arn: `arn:aws:acm:eu-central-1:${ACCOUNT}:certificate/0f0e0d0c-1111-2222-3333-444455556666`,
  registry: `${ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com/zerofleet`,
  release: '0.1.0',
  client_cidrs: '["203.0.113.0/24"]',
};

/** Programs and their variables, from a plan's outputs. */
function programsOf(plan) {
  const { api, autoscaler, workers } = plan.output_changes.zerofleet.after.environment;
  return { api, autoscaler, ...workers };
}

/** One line per program whose variables are refused. */
async function configurationProblems(plan) {
  const { loadConfig } = await import(
    pathToFileURL(inRoot(compiledDir, 'platform', 'config', 'config.js')).href
  );
  return Object.entries(programsOf(plan)).flatMap(([program, variables]) => {
    try {
      loadConfig(variables);
      return [];
    } catch (error) {
      return [`${program}: ${error.message}`];
    }
  });
}

async function planExample(workspace, directory) {
  await workspace.prepare(directory);
  writeFileSync(join(workspace.source, directory, 'offline_override.tf'), OFFLINE_PROVIDER);
  const variables = Object.entries(VARIABLES).map(([name, value]) => `-var=${name}=${value}`);
  const planned = await workspace.terraform(directory, ['plan', '-no-color', '-out=plan', ...variables]);
  if (planned.code !== 0) return planned.output.trim();
  const shown = await workspace.terraform(directory, ['show', '-json', 'plan']);
  if (shown.code !== 0) return shown.output.trim();
  const plan = JSON.parse(shown.output.slice(shown.output.indexOf('{')));
  const problems = await configurationProblems(plan);
  return problems.length === 0 ? null : problems.join('\n');
}

/**
 * @param {import('./terraform.mjs').Workspace} workspace after `initRoot`
 * @param {Promise<unknown>} validated the override must not exist while the examples are validated
 * @returns {Promise<import('./static-checks.mjs').Result>[]} two per example
 */
export function planExamples(workspace, validated) {
  const examples = workspace.directories().filter((directory) => directory.startsWith('examples'));
  return examples.flatMap((directory) => {
    const name = `plan by the real provider: ${directory}`;
    const planned = validated
      .then(() => planExample(workspace, directory))
      .then((problem) => ({ name, problem }));
    return [planned, planned.then(() => checkDependencies(workspace, directory))];
  });
}
