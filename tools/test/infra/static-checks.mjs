// Checks that need no plan: the format of the files, and the validity of each module and example.

/** @typedef {{name: string, problem: string | null}} Result one line of the report */

/**
 * @param {import('./terraform.mjs').Workspace} workspace
 * @returns {Promise<Result>}
 */
export async function checkFormat(workspace) {
  const { code, output } = await workspace.terraform('.', [
    'fmt',
    '-check',
    '-recursive',
    '-diff',
    '-no-color',
  ]);
  return {
    name: 'terraform fmt',
    problem: code === 0 ? null : `${output.trim()}\nrun: terraform fmt -recursive infra/terraform`,
  };
}

/**
 * @param {import('./terraform.mjs').Workspace} workspace
 * @returns {Promise<Result>[]} one per directory
 */
export function validateAll(workspace) {
  return workspace.directories().map(async (directory) => {
    await workspace.prepare(directory);
    const { code, output } = await workspace.terraform(directory, ['validate', '-no-color']);
    return {
      name: `terraform validate: ${directory === '.' ? 'root' : directory}`,
      problem: code === 0 ? null : output.trim(),
    };
  });
}
