"""RLSchert: a network books waiting jobs or kills mispredicted ones on a pool in discrete time steps.

Q. Wang, H. Zhang, C. Qu, Y. Shen, X. Liu, J. Li, "RLSchert: An HPC Job Scheduler Using Deep Reinforcement
Learning and Remaining Time Prediction", Applied Sciences 11(20), 9448, 2021.

What an agent sees and its network are the paper's in every setting: a picture of 120 × 72, 64 and 64 hidden
neurons, 14 answers. Four systems differ in who kills and in what is known: RLSchert without kills, with the
kill rule, with learnt kills, and DeepRM (H. Mao et al., HotNets 2016), which never corrects a prediction. Who
learns to kill is taught by an agent that does not, and by the rule. In our setting it may kill suspects only:
jobs that by now are believed to take more than twice as long as when they began, which is a part of the rule
that the paper's network hardly learns from its picture (lengths are hundredths in it).

The settings named `paper…` also learn as the paper says: the same 16 sequences again and again, its Table 4.
Ours draw new sequences in every epoch, learn what SAF does first, and have a critic that knows the arrivals
to come (`bridge.pool.world.critic_features`), which takes away most of the noise.

The settings named `code…` learn as public code does, and see what it shows: true lengths, in the picture of
waiting jobs and by the oracle clamp. No real system can have these; their results are marked `oracle`.
"""

from bridge.learn.recipe import AGENT_TEACHER, settings
from bridge.pool.recipe import PoolNetworkConfig, PoolRecipe, PoolTrainingConfig

_SOURCE = "Wang, Zhang, Qu, Shen, Liu & Li, Applied Sciences 2021 (RLSchert)"

#: Section 4.1.3 and Tables 2 and 4; the sequences are those of the training set, seed 42.
PAPER = PoolRecipe(
    "rlschert",
    "paper",
    _SOURCE,
    "As recommended, but trained as the paper says.",
    training=PoolTrainingConfig(
        epochs=300,
        learning_rate=1e-4,
        clip=0.2,
        gamma=0.99,
        lam=0.95,
        value=0.25,
        entropy=0.02,
        iterations=5,
        minibatch=128,
        target_kl=0.01,
    ),
)
RECOMMENDED = PAPER.variant(
    "recommended",
    "Books jobs by predictions that are corrected while they run; does not kill.",
    training=PoolTrainingConfig(
        epochs=200,
        sequences=32,
        fresh=True,
        learning_rate=3e-4,
        anneal=True,
        discount="step",
        critic="outlook",
        entropy=0.005,
        iterations=6,
        minibatch=1024,
        target_kl=0.02,
        teacher="saf",
        lessons=12,
    ),
    deploy="validated",
)

#: Table 3's convolutional network; the paper tells the number of kernels only.
_CNN = PoolNetworkConfig("cnn", (64,), channels=(16, 16), kernels=(8, 4), strides=(4, 2))

#: As a public copy of the authors' code trains. Rewards and advantages are not scaled there.
CODE = PAPER.variant(
    "code",
    "As paper, but as public code has it: reads true lengths (oracle), 10 episodes of each sequence.",
    pool={"oracle_clamp": True, "oracle_picture": True},
    training={
        "episodes": 10,
        "decay": 0.95,
        "value_loss": "smooth",
        "normalised": False,
        "scaled": False,
        "gamma": 1.0,
    },
)

_RULE = "As {}, while the paper's rule kills."
_KILL = "As {}, but kills by itself; learns from an agent that does not, and from the rule."
#: Section 3.6 and Equation 11: imitation fades in the first half.
_PAPER_KILL = {"teacher": AGENT_TEACHER, "imitation": 0.5, "imitated": 0.5}
_DEEPRM = "DeepRM: as {}, but knows the prediction at submission only."

SETTINGS = settings(
    RECOMMENDED,
    RECOMMENDED.variant("rule-kill", _RULE.format("recommended"), kill="rule"),
    RECOMMENDED.variant(
        "kill",
        _KILL.format("rule-kill") + " Kills suspects only.",
        kill="learned",
        suspicion=1.0,
        # it begins as its teacher, who has learnt a lot already: smaller steps, with a critic that catches up
        # soon; trying kills out is dear, hence less entropy
        training={
            "epochs": 100,
            "learning_rate": 1e-4,
            "critic_rate": 10.0,
            "entropy": 0.001,
            "teacher": AGENT_TEACHER,
            "inherit": True,
            "lessons": 8,
        },
    ),
    RECOMMENDED.variant("deeprm", _DEEPRM.format("recommended"), estimator="submit"),
    PAPER,
    PAPER.variant("paper-rule-kill", _RULE.format("paper"), kill="rule"),
    PAPER.variant(
        "paper-kill",
        _KILL.format("paper"),
        kill="learned",
        most_kills=0,
        training=_PAPER_KILL,
    ),
    PAPER.variant("paper-deeprm", _DEEPRM.format("paper"), estimator="submit"),
    PAPER.variant("paper-cnn", "As paper, with convolutions (Table 3).", network=_CNN),
    PAPER.variant(
        "paper-pg", "As paper, by the plain policy gradient (Table 3).", training={"algorithm": "pg"}
    ),
    CODE,
    CODE.variant("code-rule-kill", _RULE.format("code"), kill="rule"),
    CODE.variant("code-kill", _KILL.format("code"), kill="learned", most_kills=0, training=_PAPER_KILL),
    CODE.variant("code-deeprm", _DEEPRM.format("code"), estimator="submit"),
)
