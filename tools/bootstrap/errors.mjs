/** Something that a person has to put right; printed without a stack. */
export class SetupError extends Error {
  /** @param {string} message what is wrong and what to do, ready to print */
  constructor(message) {
    super(message);
    this.name = 'SetupError';
  }
}

/** Runs an entry point: a SetupError becomes its message and exit code 1, anything else keeps its stack. */
export async function runMain(main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(`\n${error.message}`);
    process.exitCode = 1;
  }
}
