from .loops import evaluate, train_one_epoch
